import { describeSearches } from './token-searches.js';

// All combinations of text, filter and order are in token-search.long.ts. Two does not divide five, so each order is used with each text.
describeSearches('a search among thousands of tokens', 2);
