"""What all dialects share: calls, replies, fields, pictures sent along, situations, the desk that serves."""
