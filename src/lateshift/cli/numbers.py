"""Options that are numbers: click calls what is none of them no valid `integer range`."""

import click


class Whole(click.IntRange):
    name = "whole number"


class Number(click.FloatRange):
    name = "number"
