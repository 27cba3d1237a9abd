-- What was written since a change is found without a look at all that the collection holds.
CREATE INDEX documents_by_written ON documents (org, toolset, written);
