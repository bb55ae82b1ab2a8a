"""The commands, one module each: the module's name is the command's, its `command` the code."""
