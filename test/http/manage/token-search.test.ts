import { describeSearches } from './token-searches.js';

// Every text with every filter in every order is in token-search.long.ts. Two do not divide five: all of them come to every text.
describeSearches('a search among thousands of tokens', 2);
