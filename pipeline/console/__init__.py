"""What all commands share: arguments, messages, exit statuses, signals, keys."""

from typing import TYPE_CHECKING

from .._door import door

if TYPE_CHECKING:
    from .bars import *
    from .cli import *
    from .keys import *
    from .signals import *
else:
    __all__, __getattr__ = door(
        __name__,
        {
            "bars": "Bar Bars",
            "cli": (
                "Parser STARTED add_verbosity_arguments description_of importing is_told main_program report "
                "set_verbosity settle show_starting some_output some_path some_secret some_text standard_input tell "
                "tell_loading whole_number whole_numbers"
            ),
            "keys": "space_bar",
            "signals": "ENDING FROM_KEYS handled quiet_interrupts",
        },
    )
