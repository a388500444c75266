# shellcheck shell=bash
# Sourced by the tools: how far a long step is. A bar on a terminal; elsewhere plain lines, at most one every few
# seconds, so that a log stays readable.
progress_title='' progress_last=0 progress_shown=

progress_begin() { # TITLE
	progress_title=$1 progress_last=$SECONDS progress_shown=
	[ -t 1 ] || echo "$progress_title ..."
}

progress_set() { # DONE TOTAL [DETAIL]
	local percent=$(($2 > 0 ? $1 * 100 / $2 : 0)) bar
	if [ -t 1 ]; then
		printf -v bar '%*s' $((percent * 30 / 100)) ''
		printf '\r\033[K%s [%-30s] %3d %% %.40s' "$progress_title" "${bar// /#}" "$percent" "${3:-}"
		progress_shown=1
	elif [ $((SECONDS - progress_last)) -ge 15 ]; then
		printf '%s: %d %% %.60s\n' "$progress_title" "$percent" "${3:-}"
		progress_last=$SECONDS
	fi
}

# A line of its own in the middle of a step.
progress_say() {
	[ -z "$progress_shown" ] || printf '\r\033[K'
	printf '%s\n' "$1"
	progress_shown=
}

progress_end() {
	[ -z "$progress_shown" ] || printf '\r\033[K'
	progress_shown=
}

# progress_follow TITLE: reads the output of ninja ("[3/40] ..."), ctest ("3/40 Test #3: ..."), pytest -q ("[ 40%]")
# or apt ("pmstatus:PACKAGE:40.0:...") and shows how far it is; all other lines pass unless they are mere chatter.
progress_follow() {
	local line
	progress_begin "$1"
	while IFS= read -r line; do
		if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\ (.*)$ ]]; then
			progress_set "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}"
		elif [[ $line =~ ^\ *([0-9]+)/([0-9]+)\ Test\ +#[0-9]+:\ ([^ ]+) ]]; then
			progress_set "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "${BASH_REMATCH[3]}"
			[[ $line == *Passed* ]] || progress_say "$line"
		elif [[ $line =~ ^(.*)\ \[\ *([0-9]+)%\]$ ]]; then
			[[ $line == *PASSED* || $line == *SKIPPED* ]] || progress_say "$line"
			progress_set "${BASH_REMATCH[2]}" 100 "${BASH_REMATCH[1]}"
		elif [[ $line =~ ^(pm|dl)status:([^:]*):([0-9]+)[.:] ]]; then
			progress_set "${BASH_REMATCH[3]}" 100 "${BASH_REMATCH[2]/#[0-9]*/downloading}"
		elif [[ $line =~ ^\ *Start\ +[0-9]+: ]]; then
			:
		else
			progress_say "$line"
		fi
	done
	progress_end
}

# progress_pytest RESULTS PYTEST'S ARGUMENTS...: RESULTS.xml is what came of each case, RESULTS.log all that was said; what
# comes out is for progress_follow.
progress_pytest() {
	/usr/bin/python3 -m pytest -v --tb=short -p no:cacheprovider --junitxml="$1.xml" "${@:2}" </dev/null 2>&1 |
		tee "$1.log" | grep --line-buffered '\[ *[0-9]*%\]$'
}
