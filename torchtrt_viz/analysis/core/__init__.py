"""What every analysis stands on: masks, groups, intervals, nesting, links, statistics, kept results."""
