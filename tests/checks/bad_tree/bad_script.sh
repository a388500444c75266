#!/bin/bash
# A seeded fault: shellcheck must name it.
cd "$1"
