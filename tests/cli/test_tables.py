"""Tables as programs and people write them: read as they are meant, or refused with the line and a
remedy.
"""

import gzip
import json

import numpy as np
import pandas
import pytest
from files import numbers

from lksd.cli.data import read_data
from lksd.cli.tables import NUMBER

MODELS = ("--p", "models.py:p", "--q", "models.py:q")
X = numbers().round(3)
PLAIN = "\n".join(",".join(f"{value:.3f}" for value in row) for row in X) + "\n"
SMALL = "1.5,2,-3e-1\n4,5.25,+6\n.5,8.,9E2\n1.5,3,2\n"
SMALL_VALUES = [[1.5, 2, -0.3], [4, 5.25, 6], [0.5, 8, 900], [1.5, 3, 2]]

READ = {  # the same four rows: (file, options, column names, what is said beside it)
    "plain": ("x.csv", SMALL, {}, None, ""),
    "names": ("x.csv", "a,b,c\n" + SMALL, {}, "abc", ""),
    "quoted": ("x.csv", '"a","b","c"\n' + SMALL.replace("1.5", '"1.5"'), {}, "abc", ""),
    "a mark of the byte order": ("x.csv", "\ufeffa,b,c\n" + SMALL, {}, "abc", ""),
    "Windows": ("x.csv", ("a,b,c\n" + SMALL).replace("\n", "\r\n"), {}, "abc", ""),
    "old Macintosh": ("x.csv", ("a,b,c\n" + SMALL).replace("\n", "\r"), {}, "abc", ""),
    "no last line end": ("x.csv", SMALL.rstrip(), {}, None, ""),
    "blank lines": ("x.csv", "\n\n" + SMALL.replace("\n", "\n  \n") + "\n\n", {}, None, ""),
    "spaces": ("x.csv", " a, b ,c \n" + SMALL.replace(",", " ,  "), {}, "abc", ""),
    "tabs": ("x.tsv", ("a,b,c\n" + SMALL).replace(",", "\t"), {}, "abc", ""),
    "compressed": ("x.csv.gz", gzip.compress(("a,b,c\n" + SMALL).encode()), {}, "abc", ""),
    "comments": ("x.csv", "# made\n# by hand\n" + SMALL, {}, None, "begin with # are left out (2)"),
    "names in a comment": ("x.csv", "# a,b,c\n" + SMALL, {"header": True}, "abc", ""),
    "trailing delimiters": (
        "x.csv",
        ("a,b,c\n" + SMALL).replace("\n", ",\n"),
        {},
        "abc",
        "the empty last column is left out",
    ),
    "trailing delimiters alone": (
        "x.csv",
        SMALL.replace("\n", ",\n"),
        {},
        None,
        "the empty last column is left out",
    ),
    "years": ("x.csv", "2019,2020,2021\n" + SMALL, {"header": True}, ("2019", "2020", "2021"), ""),
    "missing names": ("x.csv", "NA,b,c\n" + SMALL, {"header": True}, ("NA", "b", "c"), ""),
    "an index left out": (
        "x.csv",
        ",a,b,c\n" + "".join(f"{i},{row}\n" for i, row in enumerate(SMALL.split())),
        {"columns": "a,b,c"},
        "abc",
        "",
    ),
    "text with line ends": (
        "x.csv",
        "t,a,b,c\n" + "".join(f'"one\n\ntwo, three",{row}\n' for row in SMALL.split()),
        {"columns": "a,b,c"},
        "abc",
        "",
    ),
    "empty texts": (
        "x.csv",
        "a,b,c,t\n" + "".join(f"{row},{'' if i else 'u'}\n" for i, row in enumerate(SMALL.split())),
        {"columns": "a,b,c"},
        "abc",
        "",
    ),
}


@pytest.mark.parametrize("name", READ)
def test_read_as_meant(name, tmp_path):
    file, content, options, names, said = READ[name]
    (tmp_path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    frame = read_data(tmp_path / file, **options)
    np.testing.assert_array_equal(frame.values, SMALL_VALUES)
    assert frame.columns == (None if names is None else tuple(names))
    assert len(frame.notes) == bool(said)
    assert said in "".join(frame.notes)


ROWS = SMALL
HALVES = "1.5,2.5,-0.5\n4.5,5.5,6.5\n0.5,8.5,900.5\n"
REFUSED = {
    "a missing value first": (
        "NA,2,3\n" + ROWS,
        {},
        "'NA,2,3' has missing values and no words. Say --header",
    ),
    "an empty cell first": (",2,3\n" + ROWS, {}, "has missing values and no words. Say --header"),
    "a missing value first, said to be data": (
        "NA,2,3\n" + ROWS,
        {"header": False},
        "got 'NA' in line 1, column 1",
    ),
    "years": (
        "2019,2020,2021\n" + ROWS.replace("3,2\n", "3,2.5\n"),
        {},
        "'2019,2020,2021' is unlike all others and may be names",
    ),
    "years with decimals": ("2019.0,2020.0,2021.0\n" + HALVES, {}, "is unlike all others"),
    "years in powers": ("2.019e3,2.02e3,2.021e3\n" + HALVES, {}, "is unlike all others"),
    "years above decimals": (
        "2019,2020,2021\n" + HALVES.replace(".5", ".0"),
        {},
        "is unlike all others",
    ),
    "columns that pandas numbers": ("0,1,2\n" + PLAIN, {}, "'0,1,2' is unlike all others"),
    "quoted years": ('"2019.5","2020.5","2021.5"\n' + ROWS, {}, "is unlike all others"),
    "a typing error first": (
        "1,two,3\n" + ROWS,
        {},
        "'1,two,3' has words and numbers, and may be either",
    ),
    "names and years": ("city,2019,2020\n" + ROWS, {}, "may be either"),
    "an index": (",a,b\n" + ROWS, {}, "column 1 has none, as the index that pandas and R write"),
    "an index read and written": ("Unnamed: 0,a,b\n" + ROWS, {}, "column 1 has none"),
    "one name twice": ("a,b,a\n" + ROWS, {}, "'a' occurs twice"),
    "a missing value": (
        "a,b,c\n" + ROWS + "\n1,NA,3\n",
        {},
        "missing values; got 'NA' in line 7, column 'b'",
    ),
    "a row of delimiters": (ROWS + ",,\n", {}, "got '' in line 5, column 1"),
    "a short row": ("a,b,c\n" + ROWS + "1,2\n", {}, "expected 3 cells in every row; line 6 has 2"),
    "a long row": (ROWS + "1,2,3,4\n", {}, "line 5 has 4"),
    "names for more": (
        "a,b,c,d\n" + ROWS,
        {"columns": "a,b"},
        "expected 4 cells in every row; line 2 has 3",
    ),
    "semicolons": ("1,5;2,3\n2,5;2,4\n", {"header": False}, "Separate cells by commas"),
    "semicolons after names": ("a;b\n1.5;2.5\n", {}, "Separate cells by commas"),
    "decimal commas": (
        "a,b,c\n" + ROWS + '"1,5",2,3\n',
        {},
        "got '1,5' in line 6, column 'a'. Write decimals with points",
    ),
    "not a number": (ROWS + "1,nan,3\n", {}, "got 'nan' in line 5, column 2"),
    "infinity": (ROWS + "1,-Inf,3\n", {}, "expected finite numbers; got '-Inf' in line 5"),
    "too large": (ROWS + "1,1e999,3\n", {}, "expected finite numbers; got '1e999' in line 5"),
    "a comment inside": (ROWS + "# done\n", {}, "line 5 has 1"),
    "digits of another script": (ROWS + "1,١٢,3\n", {}, "got '١٢' in line 5"),
    "hexadecimal": (ROWS + "1,0x10,3\n", {}, "got '0x10' in line 5"),
    "the last cell sometimes": (
        ROWS.replace("\n", ",\n") + "1,2,3,4\n",
        {},
        "expected an empty last cell, as above",
    ),
    "columns without names": (
        ROWS,
        {"columns": "a"},
        "--columns: expected a table with the columns' names",
    ),
    "Latin": ("ä,b,c\n".encode("latin-1") + ROWS.encode(), {}, "UTF-8"),
    "UTF-16": (("a,b,c\n" + ROWS).encode("utf-16"), {}, "UTF-8"),
    "nothing": ("", {}, "the file is empty"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_place(name, tmp_path):
    content, options, message = REFUSED[name]
    (tmp_path / "x.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match="expected") as caught:
        read_data(tmp_path / "x.csv", **options)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "first",
    ["\uff11.5,\uff12.5,\uff13", "\u0661,\u0662,\u0663", "5%,6%,7%", "$5,$6,$7", "0x10,0x11,0x12"],
)
def test_a_first_line_of_numbers_in_other_spellings_does_not_vanish(first, tmp_path):
    (tmp_path / "x.csv").write_text(f"{first}\n{SMALL}", encoding="utf-8")
    with pytest.raises(ValueError, match=r"numbers in a spelling that is not read\. Say --header"):
        read_data(tmp_path / "x.csv")
    named = read_data(tmp_path / "x.csv", header=True)
    assert (named.names, len(named.values)) == (tuple(first.split(",")), len(SMALL.split()))


def test_numbers_are_those_of_python(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(500, 3)) * 10.0 ** rng.integers(-300, 300, (500, 3))
    pandas.DataFrame(values).to_csv(tmp_path / "x.csv", index=False, header=False)
    np.testing.assert_array_equal(read_data(tmp_path / "x.csv").values, values)
    assert all(NUMBER.fullmatch(repr(float(value))) for value in values.ravel())


@pytest.mark.parametrize("command", [("compare", *MODELS), ("rank", "models.py:p", "models.py:q")])
def test_a_header_of_years_is_no_observation(command, lksd_command, folder):
    (folder / "years.csv").write_text("2019,2020,2021\n" + PLAIN)
    (folder / "plain.csv").write_text(PLAIN)
    call = [command[0], "years.csv", *command[1:], "--json"]
    code, _, err = lksd_command(*call)
    assert code == 2
    assert "--no-header" in err
    assert json.loads(lksd_command(*call, "--header")[1])["result"]["n"] == len(X)
    assert json.loads(lksd_command(*call, "--no-header")[1])["result"]["n"] == len(X) + 1
    assert json.loads(lksd_command(command[0], "plain.csv", *command[1:], "--json")[1])["result"][
        "n"
    ] == len(X)


def test_whole_numbers_that_count_up_are_said_to_be_an_observation(lksd_command, folder):
    whole = "\n".join(",".join(map(str, row)) for row in np.rint(10 * X).astype(int))
    (folder / "whole.csv").write_text("1,2,3\n" + whole)
    code, out, err = lksd_command("compare", "whole.csv", *MODELS, "--json", "--no-check")
    assert (code, json.loads(out)["result"]["n"]) == (0, len(X) + 1)
    assert err == (
        "Note: whole.csv: the first line, '1,2,3', is read as an observation. Say --header if it "
        "holds the columns' names.\n"
    )


@pytest.mark.parametrize(
    ("first", "rows"),
    [
        ("2019.0,2020.0,2021.0", "1.0,2.0,3.5\n4.0,5.0,6.0\n0.5,8.0,900.0\n"),
        ("2010,2015,2020", "3,1,2\n5,9,7\n8,8,8\n"),
        ("2010,2011,2020", "3,1,2\n5,9,7\n8,8,8\n"),
        ("0.1,0.2,0.3", HALVES),
        ("2019.5,2021.0,1999.5", HALVES),
        ("2019", "1.5\n2.5\n0.5\n"),
        ("7.0", "1.5\n2.5\n0.5\n"),
    ],
)
def test_numbers_that_may_be_names_are_said_to_be_an_observation(first, rows, tmp_path):
    (tmp_path / "x.csv").write_text(f"{first}\n{rows}")
    frame = read_data(tmp_path / "x.csv")
    assert (len(frame.values), frame.columns) == (4, None)
    assert frame.notes == (
        f"x.csv: the first line, '{first}', is read as an observation. Say --header if it holds "
        "the columns' names.",
    )
    for said, count in ((True, 3), (False, 4)):
        frame = read_data(tmp_path / "x.csv", header=said)
        assert (len(frame.values), frame.notes) == (count, ())


def test_an_index_and_identifiers_are_said(tmp_path):
    pandas.DataFrame(
        {"id": range(1, 6), "key": [2**60 + i for i in range(5)], "x": X[:5, 0]}
    ).to_csv(tmp_path / "x.csv", index=False)
    index, identifiers = read_data(tmp_path / "x.csv").notes
    assert "column 'id' counts the rows" in index
    assert "column 'key' has integers beyond 2^53" in identifiers
    assert read_data(tmp_path / "x.csv", columns="id,x").notes == ()


def test_a_header_is_for_tables(lksd_command, folder):
    code, _, err = lksd_command("compare", "x.npy", *MODELS, "--header")
    assert (code, err) == (
        2,
        "Error: --header: expected with .csv, .tsv, .csv.gz, .tsv.gz; got x.npy. Leave it out.\n",
    )
    (folder / "folder.csv").mkdir()
    code, _, err = lksd_command("compare", "folder.csv", *MODELS)
    assert (code, err) == (
        2,
        "Error: folder.csv: expected a file; a folder is there. Check the path.\n",
    )
