"""What a change means for what is known: what announcements change, what notes rely on, and which notes disagree."""
