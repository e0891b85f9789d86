# For interactive shells; HOSTNAME is wrong in a shell that entered its host's namespace later.
PS1='\u@$(hostname):\w\$ '
