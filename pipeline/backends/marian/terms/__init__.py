"""What a translation must have: glossary terms, numbers, times, addresses and markup."""
