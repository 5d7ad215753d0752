"""The text of sentences as a reader sees it: states, the policies that decide what is shown, and changes for readers outside."""
