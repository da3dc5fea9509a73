"""`python -m zlclient.cli`."""

import sys

from . import main

sys.exit(main())
