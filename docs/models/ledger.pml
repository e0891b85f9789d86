/* ledger.pml: the set-and-get register that is a result, committed under a lock (multilock/cooklock/ledger.go).
 *
 *   place     whose directory has the lock's name; 0: nobody's. One acquisition, one directory
 *   file[p]   the lock's file is in the directory of p        result[p]   so is the value that p is about to commit
 *
 * A directory with nothing in it may be replaced by the next one. A commit renames the value out of the own directory, which
 * works while that has its place, and the value is still there.
 *
 * One step is one call that the server carries out. Every process may stand still before each of its steps for ever, and may
 * lose the reply to its commit. Breakers break any lock at any time, alive or dead: no clock keeps them from it.
 *
 * SWAPPERS, SWAPS, BREAKS   processes, swaps of each, breaks
 * Wrong variants:
 *   ANYHOW    the commit is no part of the lock: it succeeds wherever the directory is
 *   HOPEFUL   a lock that was lost in the middle of a commit is taken for a no
 *   STALE     what is learned under the lock may be what was there before
 * REACH is no property: its violation shows that all swaps can be made, in spite of all breaks.
 */
#ifndef SWAPPERS
#define SWAPPERS 2
#endif
#ifndef SWAPS
#define SWAPS 2
#endif
#ifndef BREAKS
#define BREAKS 2
#endif
#ifndef ANYHOW
#define ANYHOW 0
#endif
#ifndef HOPEFUL
#define HOPEFUL 0
#endif
#ifndef STALE
#define STALE 0
#endif

#define MINE     (place == me + 1)
#define FREE     (place == 0 || (!file[place - 1] && !result[place - 1]))

byte value = 1;                    /* what the register holds; every swap has one of its own */
byte replaced = 1;                 /* what it held before */
byte place = 0;
bool file[SWAPPERS], result[SWAPPERS];
byte turn[SWAPPERS];               /* which directory of p it is: a breaker reaches the one that it judged */
byte made = 0, breaks = 0;         /* ghosts */

proctype swapper(byte me) {
  byte round, mine, old, before;
  bool took, answered;
  for (round : 1 .. SWAPS) {
    mine = 2 + me * SWAPS + (round - 1); took = false;
    atomic { FREE -> place = me + 1; turn[me]++; file[me] = true; result[me] = false }
    atomic { old = value; if :: STALE -> old = replaced :: true fi }
    atomic { if :: MINE && file[me] :: else -> goto over fi }                     /* it was broken: begin anew */
    atomic { if :: MINE || ANYHOW -> result[me] = true :: else -> goto over fi }
    atomic {                                                                      /* the commit */
      answered = false;
      if
      :: (MINE || ANYHOW) && result[me] ->
         result[me] = false; before = value; replaced = value; value = mine; took = true;
         if :: answered = true :: true fi
      :: else
      fi
    }
    if
    :: answered -> goto done
    :: else
    fi;
    atomic { if :: value == mine -> goto done :: else fi }                        /* read back */
    atomic { if :: MINE && result[me] -> result[me] = false; assert(!took); goto free :: else fi }
    atomic { if :: value == mine -> goto done :: else fi }
    atomic {
      if
      :: MINE && file[me] -> assert(!took)
      :: else -> assert(!took || !HOPEFUL); goto over                             /* cannot tell */
      fi
    }
    goto free;
done:
    atomic { assert(took && old == before); made++ }
#ifdef REACH
    assert(!(made == SWAPPERS * SWAPS && breaks == BREAKS));
#endif
free:
    atomic { if :: MINE -> file[me] = false :: else fi }
    atomic { if :: MINE && FREE -> place = 0 :: else fi }                         /* rmdir */
over:
    atomic { old = 0; before = 0; took = false; answered = false }
  }
}

active proctype breaker() {
  byte whose, judged;
  do
  :: atomic { breaks < BREAKS && place != 0 -> whose = place - 1; judged = turn[whose] }
     atomic { if :: turn[whose] == judged -> result[whose] = false :: else fi }
     atomic { if :: turn[whose] == judged -> file[whose] = false :: else fi }
     atomic { if :: place == whose + 1 && turn[whose] == judged && FREE -> place = 0 :: else fi; breaks++; whose = 0; judged = 0 }
  od
}

init { atomic { byte p; for (p : 0 .. SWAPPERS - 1) { run swapper(p) } } }
