/* register.pml: the set-and-get register in a directory (multilock/cooklock/directory*.go).
 *
 *   N          the public epoch N: a directory that comes into being once, with the register's value in it
 *   N/live/T   the value that one swapper would like to be the next, itself a whole epoch
 *   N/next     the one that made it: moved there from N/live by one rename, which fails if next exists or T is gone
 *
 * Whoever sees N/next helps: it takes everything out of N/live, removes N/live (only an empty one can be removed), and
 * only then renames N/next to N+1. Nothing can follow in N, although the name next is free again: no source is left.
 *
 * One step is one call that the server carries out. Every process may stand still before each of its steps for ever, may begin
 * in any epoch that was ever public (an old listing, a descriptor that was open), and may lose the reply of its place.
 *
 * SWAPPERS, SWAPS  processes, and swaps of each       EPOCHS  how many there can be       HELPERS  processes that only help
 * Wrong variants:
 *   EARLY     publishes before live is gone             OUTSIDE   moves its value in from outside the epoch
 *   HOPEFUL   takes an error for a no, and tries again  REMAKE    a helper makes live once more, to see whether it is there
 * REACH  is no property: its violation shows that all swaps can succeed, the last of them in epoch REACH.
 */
#ifndef SWAPPERS
#define SWAPPERS 2
#endif
#ifndef SWAPS
#define SWAPS 2
#endif
#ifndef EPOCHS
#define EPOCHS (SWAPPERS * SWAPS + 1)
#endif
#ifndef HELPERS
#define HELPERS 1
#endif
#ifndef EARLY
#define EARLY 0
#endif
#ifndef OUTSIDE
#define OUTSIDE 0
#endif
#ifndef HOPEFUL
#define HOPEFUL 0
#endif
#ifndef REMAKE
#define REMAKE 0
#endif

#define LIVE(e, p) inlive[(e) * SWAPPERS + (p)]

byte value[EPOCHS];                /* what is in a public epoch */
bool public[EPOCHS];               /* it came into being */
bool retired[EPOCHS];              /* it has lost its name again */
bool live[EPOCHS];
bool inlive[EPOCHS * SWAPPERS];
byte next[EPOCHS];                 /* 0: there is none */

byte content = 1;                  /* ghost: the value of the register that this is to be */
byte head = 0;                     /* ghost: the epoch in which the next swap has to take effect */
byte succeeded = 0;

inline publish(e) {                /* rename(N/next -> N+1) */
  atomic {
    if
    :: next[e] != 0 ->
       assert(!public[e + 1]);
       public[e + 1] = true; live[e + 1] = true; value[e + 1] = next[e]; next[e] = 0
    :: else
    fi
  }
}

inline help(e, i) {
  if
  :: next[e] != 0 && !EARLY ->
     do
     :: if
        :: REMAKE -> atomic { if :: !live[e] -> live[e] = true :: else fi }
        :: else
        fi;
        i = 0;
        do
        :: i < SWAPPERS -> atomic { LIVE(e, i) = false; i++ }
        :: else -> break
        od;
        i = 0;
        atomic {                   /* rmdir(N/live) */
          do
          :: i < SWAPPERS && !LIVE(e, i) -> i++
          :: else -> break
          od;
          if
          :: i == SWAPPERS -> live[e] = false; i = 0; break
          :: else -> i = 0
          fi
        }
     od;
     publish(e)
  :: next[e] != 0 && EARLY -> publish(e)
  :: next[e] == 0
  fi;
  atomic { if :: e + 1 < EPOCHS && public[e + 1] -> retired[e] = true :: else fi }
}

proctype swapper(byte me) {
  byte round, e, mine, old, before, i;
  bool took, answered;
  for (round : 1 .. SWAPS) {
    mine = 2 + me * SWAPS + (round - 1);
    took = false;
again:
    atomic { e = 0; old = 0; before = 0; i = 0; answered = false; select (e : 0 .. EPOCHS - 1); if :: public[e] :: else -> goto again fi }
    if
    :: e + 1 == EPOCHS -> goto over                   /* the model ends here */
    :: else
    fi;
    atomic { if :: retired[e] -> goto again :: else -> old = value[e] fi }
    atomic { if :: live[e] -> LIVE(e, me) = true :: else -> goto assist fi }
    atomic {                                           /* rename(N/live/T -> N/next) */
      if
      :: (LIVE(e, me) || OUTSIDE) && next[e] == 0 ->
         assert(!took && e == head);
         before = content; content = mine; head = e + 1; took = true;
         next[e] = mine; LIVE(e, me) = false;
         if :: answered = true :: answered = false fi
      :: else
      fi
    }
    if
    :: answered -> goto done
    :: HOPEFUL && !answered -> goto assist
    :: else
    fi;
    atomic {                                           /* take it back: rename(N/live/T -> trash) */
      if
      :: LIVE(e, me) -> LIVE(e, me) = false; assert(!took || OUTSIDE); goto assist
      :: else
      fi
    }
    atomic { if :: next[e] == mine -> goto done :: next[e] != 0 && next[e] != mine -> assert(!took); goto assist :: else fi }
    atomic {                                           /* neither there: it was published, as mine or as another's */
      if
      :: !public[e + 1] || retired[e + 1] -> goto over /* cannot tell */
      :: public[e + 1] && !retired[e + 1] && value[e + 1] == mine -> goto done
      :: else -> assert(!took); goto again
      fi
    }
assist:
    help(e, i);
    goto again;
done:
    atomic { assert(took && old == before); succeeded++ }
#ifdef REACH
    assert(!(succeeded == SWAPPERS * SWAPS && head == REACH));
#endif
    help(e, i);
over:
    skip
  }
}

proctype helper() {
  byte e, i;
  do
  :: e + 1 < EPOCHS -> help(e, i); e++
  :: e + 1 >= EPOCHS -> break
  od
}

init {
  atomic {
    byte p;
    public[0] = true; live[0] = true; value[0] = 1;
    for (p : 0 .. SWAPPERS - 1) { run swapper(p) }
    for (p : 1 .. HELPERS) { run helper() }
  }
}
