"""Makes the published contract from the classes, the method table and the error registry.

A tool of the checkout: nothing at run time imports it, and the wheel does not carry it.
"""
