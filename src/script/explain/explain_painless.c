/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explains why the tokens of a Painless script do not parse, in Elasticsearch's words and at the
 * same offset.
 *
 * The wording depends on the path of Elasticsearch's generated parser. If only one continuation was
 * possible, it names the words that it expected. If it was selecting an alternative, it reports
 * that no sequence of tokens fits. Therefore this file walks the same grammar and makes the same
 * selections.
 *
 * The rules below use the notation of grammar.h. Alternatives of a rule that share a prefix are
 * kept separate, as in the original: there the selection takes more than one token.
 */
#include "script/explain/painless.h"
#include "script/explain/predict.h"

#include <stdio.h>

static const char *const words[] = {
    "<EOF>",
    "'{'",
    "'}'",
    "'['",
    "']'",
    "'('",
    "')'",
    "'.'",
    "'?.'",
    "','",
    "';'",
    "'if'",
    "'in'",
    "'else'",
    "'while'",
    "'do'",
    "'for'",
    "'continue'",
    "'break'",
    "'return'",
    "'new'",
    "'try'",
    "'catch'",
    "'throw'",
    "'this'",
    "'instanceof'",
    "'!'",
    "'~'",
    "'*'",
    "'/'",
    "'%'",
    "'+'",
    "'-'",
    "'<<'",
    "'>>'",
    "'>>>'",
    "'<'",
    "'<='",
    "'>'",
    "'>='",
    "'=='",
    "'==='",
    "'!='",
    "'!=='",
    "'&'",
    "'^'",
    "'|'",
    "'&&'",
    "'||'",
    "'?'",
    "':'",
    "'?:'",
    "'::'",
    "'->'",
    "'=~'",
    "'==~'",
    "'++'",
    "'--'",
    "'='",
    "'+='",
    "'-='",
    "'*='",
    "'/='",
    "'%='",
    "'&='",
    "'^='",
    "'|='",
    "'<<='",
    "'>>='",
    "'>>>='",
    "OCTAL",
    "HEX",
    "INTEGER",
    "DECIMAL",
    "STRING",
    "REGEX",
    "'true'",
    "'false'",
    "'null'",
    "PRIMITIVE",
    "'def'",
    "ID",
    "DOTINTEGER",
    "DOTID",
    /* Only in scripts that name no language; see bare_names. */
    "'assert'",
};
#define WORD_COUNT (sizeof words / sizeof *words)
#define WORD_UNKNOWN 255u

static const struct grammar_rule rules[] = {
    {"source", "function* statements"},
    {"statements", "statement* <EOF>"},
    {"function", "decltype ID parameters block"},
    {"parameters", "'(' ( decltype ID ( ',' decltype ID )* )? ')'"},
    {"statement", "rstatement | dstatement ( ';' | <EOF> )"},
    {"rstatement", "'if' '(' expression ')' trailer ( 'else' trailer )?"
                   "| 'while' '(' expression ')' ( trailer | empty )"
                   "| 'for' '(' initializer? ';' expression? ';' afterthought? ')' ( trailer | empty )"
                   "| 'for' '(' decltype ID ':' expression ')' trailer"
                   "| 'for' '(' ID 'in' expression ')' trailer"
                   "| 'try' block trap+"},
    {"dstatement", "'do' block 'while' '(' expression ')' | declaration | 'continue' | 'break' | 'return' expression?"
                   "| 'throw' expression | 'assert' expression | expression"},
    {"trailer", "block | statement"},
    {"block", "'{' statement* dstatement? '}'"},
    {"empty", "';'"},
    {"initializer", "declaration | expression"},
    {"afterthought", "expression"},
    {"declaration", "decltype declvar ( ',' declvar )*"},
    {"decltype", "type ( '[' ']' )*"},
    {"type", "'def' | PRIMITIVE | ID ( '.' DOTID )*"},
    {"declvar", "ID ( '=' expression )?"},
    {"trap", "'catch' '(' type ID ')' block"},
    /* Precedence is left out: it does not affect which tokens fit. */
    {"operand", "unary ( operator unary | 'instanceof' decltype )*"},
    {"operator", "'*' | '/' | '%' | '+' | '-' | '=~' | '==~' | '<<' | '>>' | '>>>' | '<' | '<=' | '>' | '>=' |"
                 "'==' | '===' | '!=' | '!==' | '&' | '^' | '|' | '&&' | '||' | '?:'"},
    {"expression", "operand | operand '?' expression ':' expression | operand assignment expression"},
    {"assignment", "'=' | '+=' | '-=' | '*=' | '/=' | '%=' | '&=' | '^=' | '|=' | '<<=' | '>>=' | '>>>='"},
    {"unary", "( '++' | '--' ) chain | ( '+' | '-' ) unary | unsigned"},
    {"unsigned", "chain | chain ( '++' | '--' ) | ( '!' | '~' ) unary | cast"},
    {"cast", "'(' ( 'def' | PRIMITIVE ) ')' unary | '(' reference ')' unsigned"},
    {"reference", "'def' ( '[' ']' )+ | PRIMITIVE ( '[' ']' )+ | ID ( '.' DOTID )* ( '[' ']' )*"},
    {"chain", "primary postfix* | array"},
    {"primary", "'(' expression ')' | ( OCTAL | HEX | INTEGER | DECIMAL ) | 'true' | 'false' | 'null' | STRING | REGEX"
                "| list | map | ID | ID arguments | 'new' type arguments"},
    {"postfix", "invocation | field | element"},
    {"member", "invocation | field"},
    {"invocation", "( '.' | '?.' ) DOTID arguments"},
    {"field", "( '.' | '?.' ) ( DOTID | DOTINTEGER )"},
    {"element", "'[' expression ']'"},
    {"array", "'new' type ( '[' expression ']' )+ ( member postfix* )?"
              "| 'new' type '[' ']' '{' ( expression ( ',' expression )* )? '}' postfix*"},
    {"list", "'[' expression ( ',' expression )* ']' | '[' ']'"},
    {"map", "'[' pair ( ',' pair )* ']' | '[' ':' ']'"},
    {"pair", "expression ':' expression"},
    {"arguments", "'(' ( argument ( ',' argument )* )? ')'"},
    {"argument", "expression | lambda | reference_to"},
    {"lambda", "( parameter | '(' ( parameter ( ',' parameter )* )? ')' ) '->' ( block | expression )"},
    {"parameter", "decltype? ID"},
    {"reference_to", "decltype '::' ID | decltype '::' 'new' | 'this' '::' ID"},
};

enum { RULE_SOURCE, RULE_STATEMENTS }; /* indexes of the first rules */

const struct grammar_language painless_language = {rules, sizeof rules / sizeof *rules, words, WORD_COUNT};

/* About the number of steps of one lookahead through 64 KB of text inside one bracket. */
#define EXPLAIN_STEPS_MAX ((uint64_t)4 * 1000 * 1000)

struct explain_walk {
    struct compiler *compiler;
    struct predictor predictor;
    uint8_t *words; /* by token; WORD_UNKNOWN until it is computed */
    size_t at;
    uint16_t *returns; /* stack of the states to continue at after a rule ends */
    size_t depth;
    size_t capacity;
};

static unsigned word_of(const struct token *token, bool assertion)
{
    static const char *const kinds[] = {[TOKEN_EOF] = "<EOF>",
                                        [TOKEN_DOT_ID] = "DOTID",
                                        [TOKEN_DOT_INTEGER] = "DOTINTEGER",
                                        [TOKEN_PRIMITIVE] = "PRIMITIVE",
                                        [TOKEN_DEF] = "'def'",
                                        [TOKEN_OCTAL] = "OCTAL",
                                        [TOKEN_HEX] = "HEX",
                                        [TOKEN_INTEGER] = "INTEGER",
                                        [TOKEN_DECIMAL] = "DECIMAL",
                                        [TOKEN_STRING] = "STRING",
                                        [TOKEN_REGEX] = "REGEX",
                                        [TOKEN_ID] = "ID",
                                        [TOKEN_SYMBOL] = NULL};
    if (assertion)
        return grammar_word(&painless_language, SLICE_LIT("'assert'"));
    if (kinds[token->kind] != NULL)
        return grammar_word(&painless_language, slice_from(kinds[token->kind]));
    char quoted[16];
    int len = snprintf(quoted, sizeof quoted, "'%.*s'", SLICE_ARG(token->text));
    bool fits = token->kind != TOKEN_ERROR && len > 0 && (size_t)len < sizeof quoted;
    return fits ? grammar_word(&painless_language, slice_make(quoted, (size_t)len)) : (unsigned)WORD_COUNT;
}

static unsigned word_at(void *user, size_t at)
{
    const struct explain_walk *walk = user;
    const struct token *token = &walk->compiler->tokens[at];
    const struct token *next = at + 1 < walk->compiler->token_count ? token + 1 : token;
    bool assertion = walk->compiler->bare_names && token->kind == TOKEN_ID && slice_is(token->text, "assert") &&
                     !token_is(next, "=");
    if (walk->words[at] == WORD_UNKNOWN)
        walk->words[at] = (uint8_t)word_of(token, assertion);
    return walk->words[at];
}

/* Returns: a token as error messages show it, with escaped line ends and tabs. */
static struct slice shown_token(struct explain_walk *walk, const struct token *token)
{
    struct slice text = token->kind == TOKEN_EOF ? SLICE_LIT("<EOF>") : token->text;
    struct buf out = BUF_INIT(BUF_UNLIMITED);
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c == '\n' || c == '\t' || c == '\r')
            buf_printf(&out, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
        else
            buf_byte(&out, c);
    }
    struct slice copy = arena_copy(walk->compiler->scratch, buf_as_slice(&out));
    buf_deinit(&out);
    return copy;
}

static struct slice set_shown(struct explain_walk *walk, const struct grammar_set *set)
{
    struct buf out = BUF_INIT(BUF_UNLIMITED);
    unsigned count = 0;
    for (unsigned i = 0; i < WORD_COUNT; i++)
        if (grammar_set_has(set, i))
            buf_printf(&out, "%s%s", count++ == 0 ? "" : ", ", words[i]);
    struct slice list =
        arena_printf(walk->compiler->scratch, count > 1 ? "{%.*s}" : "%.*s", SLICE_ARG(buf_as_slice(&out)));
    buf_deinit(&out);
    return list;
}

static void fail_unexpected(struct explain_walk *walk, const struct grammar_set *expected)
{
    const struct token *token = &walk->compiler->tokens[walk->at];
    compile_fail(walk->compiler, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, token->start,
                 "unexpected token ['%.*s'] was expecting one of [%.*s].", SLICE_ARG(shown_token(walk, token)),
                 SLICE_ARG(set_shown(walk, expected)));
}

static void fail_sequence(struct explain_walk *walk, size_t at)
{
    const struct token *token = &walk->compiler->tokens[at];
    if (token->kind == TOKEN_EOF)
        compile_fail(walk->compiler, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, token->start, "unexpected end of script.");
    else
        compile_fail(walk->compiler, CLASS_ILLEGAL_ARGUMENT_EXCEPTION, token->start,
                     "invalid sequence of tokens near ['%.*s'].", SLICE_ARG(shown_token(walk, token)));
    walk->compiler->error.cause = "no_viable_alt_exception";
}

/* Consumes the next word if it is in the set. Returns: whether it was. Any other word sets the
   error; a token that forms no word does not. */
static bool walk_match(struct explain_walk *walk, const struct grammar_set *set)
{
    unsigned word = word_at(walk, walk->at);
    if (word >= WORD_COUNT)
        return false;
    if (!grammar_set_has(set, word)) {
        fail_unexpected(walk, set);
        return false;
    }
    if (walk->at + 1 < walk->predictor.word_count)
        walk->at++;
    return true;
}

static bool walk_choose(struct explain_walk *walk, uint16_t state, uint16_t *ret_state)
{
    unsigned choice = 0;
    size_t at = walk->at;
    switch (predict(&walk->predictor, state, walk->at, &choice, &at)) {
    case 0: *ret_state = walk->predictor.grammar->states[state].choices[choice]; return true;
    case PREDICT_UNKNOWN: return false;
    default: fail_sequence(walk, at); return false;
    }
}

static void walk_call(struct explain_walk *walk, uint16_t next)
{
    walk->returns =
        arena_grow(walk->compiler->scratch, walk->returns, walk->depth, &walk->capacity, sizeof *walk->returns);
    walk->returns[walk->depth++] = next;
}

/* Returns: the state to start from. Everything that the parser has completed fits, and no
   selection depends on tokens outside of its statement. So the walk starts at the last top-level
   statement, which bounds its cost for long scripts. */
static uint16_t first_state(struct explain_walk *walk)
{
    const struct compiler *compiler = walk->compiler;
    if (compiler->begun != NULL)
        walk->at = (size_t)(compiler->begun - compiler->tokens);
    return walk->predictor.grammar->starts[compiler->begun_later ? RULE_STATEMENTS : RULE_SOURCE];
}

/* Walks until a token does not fit. Returns: whether the whole text fits. */
static bool walk_all(struct explain_walk *walk)
{
    const struct grammar *grammar = walk->predictor.grammar;
    uint16_t state = first_state(walk);
    bool fits = true;
    while (fits) {
        const struct grammar_state *node = &grammar->states[state];
        switch (node->kind) {
        case GRAMMAR_STOP:
            if (walk->depth == 0)
                return true;
            state = walk->returns[--walk->depth];
            break;
        case GRAMMAR_PASS: state = node->next; break;
        case GRAMMAR_MATCH:
            fits = walk_match(walk, &node->set);
            state = node->next;
            break;
        case GRAMMAR_CALL:
            walk_call(walk, node->next);
            state = grammar->starts[node->rule];
            break;
        case GRAMMAR_CHOICE:
        case GRAMMAR_OPTION: fits = walk_choose(walk, state, &state); break;
        }
    }
    return false;
}

static void walk_init(struct explain_walk *walk, struct compiler *compiler, struct arena *arena)
{
    *walk = (struct explain_walk){.compiler = compiler, .words = arena_alloc(arena, compiler->token_count)};
    memset(walk->words, WORD_UNKNOWN, compiler->token_count);
    walk->predictor = (struct predictor){.grammar = grammar_new(arena, &painless_language),
                                         .word = word_at,
                                         .user = walk,
                                         .word_count = compiler->token_count,
                                         .steps_left = EXPLAIN_STEPS_MAX};
}

bool painless_follows(struct compiler *compiler)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct explain_walk walk;
    walk_init(&walk, compiler, &arena);
    return walk_all(&walk);
}

void explain_painless(struct compiler *compiler)
{
    tl_cleanup(arena_deinit) struct arena arena = ARENA_INIT;
    struct explain_walk walk;
    walk_init(&walk, compiler, &arena);
    (void)walk_all(&walk);
    const struct token *token = compiler->stopped;
    if (!compiler->error.set && token != NULL && token->kind != TOKEN_ERROR)
        fail_sequence(&walk, (size_t)(token - compiler->tokens));
}
