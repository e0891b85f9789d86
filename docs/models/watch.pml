/* watch.pml: the cooking lock of multilock/cooklock: watch, then swap, then compare.
 *
 * The register holds the number of the swap that wrote it, so every value is unlike any other; 0 is a register that nobody
 * has touched. Time is discrete, and one clock ticks for all, but it is only ever used to measure how much of it has passed.
 * A chef may stand still before each of its steps for any time, so it may also have crashed there. A peek may show any value
 * that was ever in the register.
 *
 * CHEFS, ROUNDS, END   processes, swaps of each, the last tick
 * W, W1     for how long a value is watched, by all but chef 1, and by chef 1
 * C         for how long a chef cooks, at most
 * Wrong variants:
 *   HASTY 1     the watch is counted from before the peek        LATE 1      cooking is counted from after the swap
 *   CARELESS 1  what the swap returned is not compared           C > W       cooks for longer than others watch
 *   W1 < C      one chef has a shorter period than the others
 */
#ifndef CHEFS
#define CHEFS 3
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef END
#define END 9
#endif
#ifndef W
#define W 2
#endif
#ifndef W1
#define W1 W
#endif
#ifndef C
#define C W
#endif
#ifndef HASTY
#define HASTY 0
#endif
#ifndef LATE
#define LATE 0
#endif
#ifndef CARELESS
#define CARELESS 0
#endif

byte now = 1;
byte cell = 0;
byte until[CHEFS];                 /* a chef cooks until then */

active proctype clock() { do :: atomic { now < END -> now++ } od }

proctype chef(byte me) {
  byte round, seen, since, start, old, other;
  bool own;
  for (round : 1 .. ROUNDS) {
    if
    :: own -> skip                                     /* its own value, watched since its swap returned */
    :: HASTY -> since = now; atomic { select (seen : 0 .. cell) }
    :: !HASTY -> atomic { select (seen : 0 .. cell) } since = now
    fi;
    (seen == 0 || now >= since + (me == 1 -> W1 : W)); /* nobody can be cooking on an untouched register */
    start = now;
    atomic { old = cell; cell++ }
    if :: LATE -> start = now :: else fi;
    atomic {
      if
      :: (old == seen || CARELESS) && now < start + C ->
         for (other : 0 .. CHEFS - 1) { assert(other == me || now >= until[other]) }
         until[me] = start + C
      :: else
      fi;
      other = 0
    }
    atomic {
      if
      :: own = true; seen = old + 1; since = now
      :: own = false; seen = 0; since = 0
      fi;
      start = 0; old = 0
    }
  }
}

init {
  atomic {
    byte p;
    for (p : 0 .. CHEFS - 1) { run chef(p) }
  }
}
