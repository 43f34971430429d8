"""Version 1 of the Agent Client Protocol: its stable messages, and nothing of Callboard's own.

Classes are named as the published schema names them. What the schema has without a name of its own, a
variant of a union, is named after its tag.
"""
