-- What a file says of itself, so that a lost log and a copy of a file in use are noticed; see `stores/sqlite/lineage.py`.
INSERT INTO counters (name, value) VALUES
    ('store', random() & 0x3fffffffffffffff), ('epoch', 0), ('began', 0), ('in_use', 0), ('commits', 0);
