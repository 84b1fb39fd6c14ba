"""A group of commands whose help says of each, whole, what it does."""

import click

WHOLE = 1_000  # characters


class Nouns(click.Group):
    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What click does, which cuts each description at the edge of the terminal; here it goes on in the next line."""
        shown = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, command.get_short_help_str(WHOLE))
            for name, command in shown
            if command is not None and not command.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)
