"""docs/server-operation.md: its table has every option of the command."""

import re

from pipeline.apps.serve import arguments
from tests.conftest import ROOT


def test_every_option_is_in_the_table():
    page = (ROOT / "docs" / "server-operation.md").read_text("utf-8")
    table = page.split("| option | meaning |\n|---|---|\n")[1].split("\n\n")[0]
    listed = {name for row in table.splitlines() for name in re.findall(r"--[\w-]+", row.split("|")[1])}
    taken = {name for action in arguments()._actions for name in action.option_strings if name.startswith("--")}
    assert listed == taken - {"--help"}
