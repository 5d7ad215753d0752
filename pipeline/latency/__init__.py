"""How late the text comes: the field's measures (pure), and logs that its scorers read."""
