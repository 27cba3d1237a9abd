"""What a client starts: `refdesk serve --stdio`, in the bundle's environment."""

import sys

from refdesk.__main__ import main

if __name__ == "__main__":
    sys.argv[1:] = ["serve", "--stdio", *sys.argv[1:]]
    main()
