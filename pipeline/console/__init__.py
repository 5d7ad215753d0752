"""What all commands share: arguments, messages, exit statuses, signals, keys."""
