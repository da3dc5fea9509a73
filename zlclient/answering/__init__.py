"""A question over a document of any length: which requests leave, how their answers become one, and what supports it.

plan (one request, or parts) ─▶ reading (the rounds of a call, pure) ─▶ driving (threads or asyncio) ─▶ citations
"""
