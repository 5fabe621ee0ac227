"""Every experiment of the paper and every contestant, side by side. Not part of the installed package."""
