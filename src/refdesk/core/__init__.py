"""What refdesk does, knowing no engine, no transport and no toolset."""
