# SPDX-License-Identifier: Apache-2.0
#
# Disease: threads of Ruby compute; the global VM lock lets one of them run.
# Cure (second argument: cured): processes.
n = ARGV[0].to_i
work = lambda do |id|
  x = id + 1
  (8_000_000 / n).times { x = (x * 1103515245 + 12345) & 0x7fffffff }
  x
end
if ARGV[1] == "cured"
  (0...n).map { |id| fork { work.call(id) } }.each { |pid| Process.wait(pid) }
else
  (0...n).map { |id| Thread.new { work.call(id) } }.each(&:join)
end
