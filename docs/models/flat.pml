/* flat.pml: the register that suggests itself, and fails: one directory with numbered files. A swap links its own file to the next
 * number, which fails if that is taken, and returns the content of the number before.
 *
 * A process may begin at any number that was ever there: from an old listing, or because it stood still.
 *
 * COLLECT 0   nothing is ever removed: correct, and the directory grows for ever
 * COLLECT 1   old numbers are removed: then a number can be taken a second time
 * CHECK 1     after the link, a swap makes sure that the number before its own is still there: that does not help
 */
#ifndef SWAPPERS
#define SWAPPERS 2
#endif
#ifndef SWAPS
#define SWAPS 2
#endif
#ifndef COLLECT
#define COLLECT 1
#endif
#ifndef CHECK
#define CHECK 0
#endif
#define FILES (SWAPPERS * SWAPS + 2)

byte file[FILES];                  /* 0: there is none */
byte ever = 1;                     /* how many numbers were ever taken */
byte content = 1;                  /* ghost: the value of the register that this is to be */

proctype swapper(byte me) {
  byte round, at, mine, old, before;
  bool took;
  for (round : 1 .. SWAPS) {
    mine = 2 + me * SWAPS + (round - 1); took = false;
again:
    atomic { old = 0; select (at : 0 .. FILES - 2); if :: at < ever :: else -> goto again fi }
follow:
    atomic { old = file[at]; if :: old == 0 -> goto again :: else fi }
    atomic {
      if
      :: at + 1 == FILES -> goto over
      :: at + 1 < FILES && file[at + 1] != 0 -> at++; goto follow
      :: else ->
         file[at + 1] = mine;
         if :: ever == at + 1 -> ever++; before = content; content = mine; took = true :: else fi
      fi
    }
    if
    :: CHECK && file[at] == 0 -> goto over             /* cannot tell; the stray file stays if it crashes here */
    :: else
    fi;
    assert(took && old == before);
over:
    atomic { at = 0; old = 0; before = 0; took = false }
  }
}

active proctype collector() {
  byte oldest;
  do
  :: atomic { COLLECT && oldest + 1 < ever -> file[oldest] = 0; oldest++ }
  od
}

init { atomic { byte p; file[0] = 1; for (p : 0 .. SWAPPERS - 1) { run swapper(p) } } }
