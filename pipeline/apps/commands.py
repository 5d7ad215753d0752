"""The commands of the program."""

COMMANDS = {
    "live": "live subtitles from a microphone, or from a recording at its own pace",
    "translate": "subtitle files from recordings, as fast as the machine allows",
    "serve": "a server for browsers and programs, and its pages",
    "check": "what in subtitle files breaks the rules of layout",
    "models": "list, fetch, compile and inspect models",
    "bench": "run a benchmark on this machine",
}
"""Command → what it does. Each is ``python -m pipeline.COMMAND`` as well, and imported only when it is run."""
DESCRIPTION = "translated subtitles while people speak"
