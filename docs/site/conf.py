"""How Sphinx makes the site of the lessons; `make site` runs it.

Nothing is executed: pages show the outputs that are stored in the notebooks. Nothing is fetched,
neither while the site is built nor while it is read: formulas are MathML, which browsers draw.
"""

import os

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

REPOSITORY = os.environ.get("SITE_REPOSITORY", "")

project = html_title = "Multi-head attention"
author = "the authors of mha-course"
language = "en"
extensions = ["myst_nb"]

nb_execution_mode = "off"
nb_merge_streams = True
nb_custom_formats = {".ipynb": "mha_classroom.commands.site.read_notebook"}
myst_enable_extensions = ["dollarmath"]
# JupyterLab does not know these either.
myst_disable_syntax = ["myst_block_break", "myst_line_comment", "myst_target", "myst_role"]

html_theme = "sphinx_book_theme"
html_favicon = "icon.svg"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_sidebars = {"**": ["navbar-logo.html", "search-field.html", "sbt-sidebar-nav.html"]}
html_sourcelink_suffix = ""  # what the download button gives is the notebook itself
html_use_index = False
html_domain_indices = False
html_show_copyright = False
html_math_renderer = "mathml"
html_theme_options = {
    "repository_url": REPOSITORY,
    "repository_provider": "github",  # how addresses below that of the repository look
    "use_repository_button": bool(REPOSITORY),
    "use_fullscreen_button": False,
    "home_page_in_toc": True,
    "navbar_persistent": [],
    "search_bar_text": "Search",
    "show_navbar_depth": 1,
}


def formula(display):
    def visit(translator, node):
        mathml = convert(node.astext(), display=display)
        if "\\" in mathml:  # a command that the converter does not know
            raise ValueError(f"the site cannot show the formula {node.astext()}")
        translator.body.append(mathml)
        raise SkipNode

    return visit, None


def setup(app):
    app.add_html_math_renderer("mathml", formula("inline"), formula("block"))
