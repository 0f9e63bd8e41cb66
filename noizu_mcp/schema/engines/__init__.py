"""The validators behind `compile_schema`: the native engine and the pure-Python one."""
