"""The domain logic, independent of storage engines, transports and toolsets."""
