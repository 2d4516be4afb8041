"""What axe-core finds on a page that keeps somebody from using it."""

__all__ = ["serious"]


def serious(page, *selectors):
    """(rule, HTML of where) of each serious or critical finding, within the selectors if any."""
    from axe_playwright_python.sync_playwright import Axe

    # preload would ask for the style sheets again, some of them at addresses of axe's own making
    options = {"resultTypes": ["violations"], "preload": False}
    found = Axe().run(page, context=list(selectors), options=options).response["violations"]
    bad = [rule for rule in found if rule["impact"] in ("serious", "critical")]
    return [(rule["id"], node["html"]) for rule in bad for node in rule["nodes"]]
