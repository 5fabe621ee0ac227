"""Words and limits of certificates: what is proven about a choice of k points."""

#: What the word means, where it first appears.
COVERAGE = "Coverage: how much nearer rows are to their representatives, in the mean, than to the best single row."


def percent(share: float) -> str:
    """A share in percent: two significant digits, whole numbers from 100 % on."""
    value = 100.0 * share
    if not value > 1e-10:
        return "0 %"
    if value < 1e-3:
        return "less than 0.001 %"
    return f"{value:.2g} %" if value < 99.5 else f"{value:,.0f} %"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
