#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Checks the manual pages; called by ctest. groff has nothing to complain about; every option that `thrum COMMAND --help`
# names stands in the command's page, and every variable that a library reads in that library's. A default that is a number
# is the same in --help and in each page that states it.
#
#   check-man.sh FOLDER THRUM
set -u
folder=$1 thrum=$2
failed=0

for page in "$folder"/*.[137]; do
  warnings=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
  if [[ -n $warnings ]]; then
    printf '%s\n%s\n' "$page:" "$warnings"
    failed=1
  fi
done

# A page's title, which is above and below it, is the name under which man(1) finds it.
for page in "$folder"/*.[137]; do
  title=$(sed -n 's/^\.TH \([^ ]*\) .*/\1/p' "$page")
  name=${page##*/}
  [[ ${title//\\/} == "$(tr '[:lower:]' '[:upper:]' <<<"${name%.*}")" ]] || {
    echo "$page has the title ${title:-(none)}"
    failed=1
  }
done

for command in run compare counters ps stat trace; do
  page=$folder/thrum-$command.1
  options=$("$thrum" "$command" --help | grep -oE '(^| |,)--[a-z][a-z-]*' | grep -oE -- '--[a-z-]+' | sort -u)
  [[ -n $options ]] || {
    echo "thrum $command --help names no option"
    failed=1
  }
  for option in $options; do
    grep -qF -- "${option//-/\\-}" "$page" || {
      echo "$page does not describe $option"
      failed=1
    }
  done
done

for variable in $({ "$thrum" run --help; "$thrum" compare --help; } | grep -oE 'THRUM_[A-Z_]+' | sort -u); do
  grep -qF "$variable" "$folder/libthrum-cache.7" || {
    echo "libthrum-cache.7 does not describe $variable"
    failed=1
  }
done

# The numbers that a page calls the default of an option or variable; none if it does not state one.
defaults_in() { # PAGE NAME
  sed 's/\\-/-/g' "$1" | awk -v name="$2([^A-Za-z_-]|$)" '
    /^\.(TP|SH)/ { inside = 0 }
    is_tag && $0 ~ name { inside = 1 }
    { is_tag = /^\.TP/ }
    inside { sub(/^\.[A-Z]+ /, ""); printf "%s ", $0 }' |
    grep -oiE 'default:? +[0-9]+|[0-9]+ \(the default' | grep -oE '[0-9]+'
}

# One line for each option with such a default: its name, the number, and its variable if it has one.
defaults_of_help() {
  "$thrum" "$1" --help | awk '
    function tell() {
      if (match(entry, /default:? +[0-9]+/)) {
        number = substr(entry, RSTART, RLENGTH)
        sub(/.* /, "", number)
        option = match(entry, /--[a-z-]+/) ? substr(entry, RSTART, RLENGTH) : ""
        print option, number, match(entry, /THRUM_[A-Z_]+/) ? substr(entry, RSTART, RLENGTH) : ""
      }
      entry = ""
    }
    /^  -/ { tell() }
    { entry = entry " " $0 }
    END { tell() }'
}

compared=0
expect_default() { # PAGE NAME NUMBER
  local stated
  stated=$(defaults_in "$folder/$1" "$2")
  [[ -n $stated ]] || return
  compared=$((compared + 1))
  grep -qx "$3" <<<"$stated" || {
    echo "$1 says that the default of $2 is ${stated//$'\n'/, }; --help says $3"
    failed=1
  }
}

for command in run compare counters ps stat trace; do
  while read -r option number variable; do
    expect_default "thrum-$command.1" "$option" "$number"
    [[ -z $variable ]] || expect_default libthrum-cache.7 "$variable" "$number"
  done < <(defaults_of_help "$command")
done
((compared >= 12)) || {
  echo "only $compared defaults were compared"
  failed=1
}

mapfile -t variables < <(grep -rhoE '"THRUM_[A-Z_]+"' "$folder/../../src/runtime" | tr -d '"' | sort -u)
((${#variables[@]})) || failed=1
for variable in "${variables[@]}"; do
  grep -qF "$variable" "$folder/libthrum.7" || {
    echo "libthrum.7 does not describe $variable"
    failed=1
  }
done
exit "$failed"
