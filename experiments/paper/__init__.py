"""From lines of results to tables, figures and the results page. Nothing here runs a method."""
