/** The widths of the columns of a list, for the command line and the terminal UI. */

export interface ColumnClaim {
  /** The columns with the highest rank are left out first; rank 0 always stays. */
  rank: number;
  /** The width down to which its texts may be cut, in columns of the terminal. */
  least: number;
  /** The width that it has if there is room. */
  wanted: number;
  /** Whether optional columns are left out before it is cut, such as the name of what a row is. */
  keepsWidth?: boolean;
}

/** Columns above this rank are optional: they are left out before a column that keeps its width. */
const MAX_NEEDED_RANK = 2;

/**
 * Leaves out columns until the others fit, and shares the width among these: the longest texts are cut first.
 *
 * @param gap between two columns.
 * @returns the width of each column, in their order; null: it is left out.
 */
export function columnWidths(claims: readonly ColumnClaim[], width: number, gap: number): (number | null)[] {
  const needed = withoutRanks(claims, width, gap, {
    needed: ({ keepsWidth, wanted, least }) => (keepsWidth ? wanted : least),
    canGo: ({ keepsWidth, rank }) => !keepsWidth && rank > MAX_NEEDED_RANK,
  });
  const shown = withoutRanks(needed, width, gap, { needed: ({ least }) => least, canGo: ({ rank }) => rank > 0 });
  const widths = new Map(shown.map((claim) => [claim, claim.wanted]));
  let excess = sumOf(shown, gap, ({ wanted }) => wanted) - width;
  for (const areKept of [false, true]) {
    const cuttable = shown.filter(({ keepsWidth = false }) => keepsWidth === areKept);
    for (; excess > 0; excess -= 1) {
      const longest = longestOf(cuttable, widths);
      if (longest === undefined) break;
      widths.set(longest, (widths.get(longest) ?? 0) - 1);
    }
  }
  return claims.map((claim) => widths.get(claim) ?? null);
}

function sumOf(claims: readonly ColumnClaim[], gap: number, needed: (claim: ColumnClaim) => number): number {
  return claims.reduce((sum, claim) => sum + needed(claim), gap * (claims.length - 1));
}

function withoutRanks(
  claims: readonly ColumnClaim[],
  width: number,
  gap: number,
  { needed, canGo }: { needed: (claim: ColumnClaim) => number; canGo: (claim: ColumnClaim) => boolean },
): readonly ColumnClaim[] {
  const optional = claims.filter(canGo);
  if (optional.length === 0 || sumOf(claims, gap, needed) <= width) return claims;
  const highest = Math.max(...optional.map(({ rank }) => rank));
  const others = claims.filter((claim) => claim.rank !== highest || !canGo(claim));
  return withoutRanks(others, width, gap, { needed, canGo });
}

/** The longest that can still be cut. */
function longestOf(claims: readonly ColumnClaim[], widths: ReadonlyMap<ColumnClaim, number>): ColumnClaim | undefined {
  const widthOf = (claim: ColumnClaim) => widths.get(claim) ?? claim.wanted;
  const cuttable = claims.filter((claim) => widthOf(claim) > claim.least);
  return cuttable.reduce<ColumnClaim | undefined>(
    (longest, claim) => (longest && widthOf(longest) >= widthOf(claim) ? longest : claim),
    undefined,
  );
}
