/* classic.pml: the cooking lock as it was first described; the reason why ours compares no clocks.
 *
 * The register holds the time until which somebody cooks. A chef peeks until that is over by its own clock, reads its clock, swaps
 * in that time plus P, and cooks for C from then if what it replaced was over. Others' clocks differ from chef 0's by SKEW.
 *
 * It is safe if and only if   P (the shortest anybody publishes)  >=  C (the longest anybody cooks) + GAP + SKEW,
 * where GAP is the longest time between reading the clock and the swap. A paused process makes it any number.
 *
 * CHEFS, ROUNDS, END   processes, swaps of each, the last tick
 * P, P1     what is published, by all but chef 1, and by chef 1
 * STALE     1: a peek may show any time that was ever published
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
#ifndef P
#define P 3
#endif
#ifndef P1
#define P1 P
#endif
#ifndef C
#define C P
#endif
#ifndef GAP
#define GAP 0
#endif
#ifndef SKEW
#define SKEW 0
#endif
#ifndef STALE
#define STALE 0
#endif
#define CLOCK(p) (now + ((p) == 0 -> 0 : SKEW))
#define MAYTICK(p) (reading[p] == 0 || now - reading[p] < GAP)

byte now = 1, cell;
byte published[CHEFS * ROUNDS + 1], count;
byte reading[CHEFS];               /* when a chef that has not swapped yet read its clock */
byte until[CHEFS];                 /* a chef cooks until then, by the clock of chef 0 */

active proctype clock() {
  do
  :: atomic { now < END && MAYTICK(0) && MAYTICK(1) && (CHEFS < 3 || MAYTICK(CHEFS - 1)) -> now++ }
  od
}

proctype chef(byte me) {
  byte round, seen, start, begun, old, other;
  for (round : 1 .. ROUNDS) {
    do
    :: atomic {
         if
         :: STALE -> select (other : 0 .. count); seen = published[other]; other = 0
         :: !STALE -> seen = cell
         fi;
         if :: CLOCK(me) >= seen -> seen = 0; break :: else fi
       }
       CLOCK(me) >= seen
    od;
    atomic { start = CLOCK(me); begun = now; reading[me] = now }
    atomic {
      old = cell; cell = start + (me == 1 -> P1 : P);
      count++; published[count] = cell; reading[me] = 0
    }
    atomic {
      if
      :: old <= start && now < begun + C ->
         for (other : 0 .. CHEFS - 1) { assert(other == me || now >= until[other]) }
         until[me] = begun + C
      :: else
      fi;
      other = 0; start = 0; old = 0; begun = 0
    }
    (now >= until[me])
  }
}

init { atomic { byte p; for (p : 0 .. CHEFS - 1) { run chef(p) } } }
