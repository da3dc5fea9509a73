"""zlclient: the layer between an application and a chat model."""

__version__ = "0.1.0"
