"""Answers in words: a workspace's evidence put before its chat model, or quoted where that is the offline one."""
