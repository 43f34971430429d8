"""Agents that are woken by the clock (session-messaging 8): schedules, what they fire, the engine, the tools."""
