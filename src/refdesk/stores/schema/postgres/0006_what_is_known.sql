-- Of `entries`: from here on a byte of `frequencies` holds two of them, the lower half first, where none is above 15. What
-- searches read is made anew from the documents when the store is opened next.

-- Ends a transaction that went by what its process knew, where another one has written since.
CREATE FUNCTION refdesk_require(holds boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF holds IS NOT TRUE THEN
        RAISE EXCEPTION 'another process has written' USING ERRCODE = 'serialization_failure';
    END IF;
END
$$;
