"""A table that an instructor gives: a CSV file, however a spreadsheet has saved it."""

import csv
import io

__all__ = ["rows_of"]


def rows_of(path, needed=(), columns=()):
    """Yield (line number, {column: text}) of the lines that are not empty.

    path: a Path; UTF-8, with commas or semicolons. needed: columns that there have to be,
    of those that a whole first line has.
    Raises: ValueError naming the file, the line and what is wrong there, or why it cannot be read.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ValueError(
            f"{path.name}, line {line}: this is not UTF-8. Save the file as “CSV UTF-8”."
        ) from error
    if not text:
        return
    delimiter = max(",;", key=text.partition("\n")[0].count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, restval="")
    try:
        missing = [name for name in needed if name not in reader.fieldnames]
        if missing:
            raise ValueError(
                f"{path.name}: the first line has no column {', '.join(missing)}; it has to be "
                f"{','.join(columns)}, got {','.join(reader.fieldnames)!r}"
            )
        for row in reader:
            if None in row:
                raise ValueError(
                    f"{path.name}, line {reader.line_num}: more cells than the first line names; "
                    f"a text with a {delimiter!r} has to stand in quotes"
                )
            if any(cell.strip() for cell in row.values()):
                yield reader.line_num, row
    except csv.Error as error:
        line = reader.reader.line_num
        raise ValueError(f"{path.name}, line {line}: {error}") from error
