"""What changes mean for stored knowledge: what announcements change, what notes rely on, and which notes disagree."""
