#!/usr/bin/env bash
# Makes the role that refdesk signs in as: the owner of its tables, and neither superuser nor BYPASSRLS, so that row-level
# security binds it. The extension is made here because such a role may not make it.
set -euo pipefail

psql --set=ON_ERROR_STOP=1 --set=password="$POSTGRES_PASSWORD" --username postgres --dbname refdesk <<'SQL'
CREATE EXTENSION IF NOT EXISTS vector;
CREATE ROLE refdesk LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD :'password';
ALTER DATABASE refdesk OWNER TO refdesk;
SQL
