if ( ctx._source.process_id != process_id ) { assert false }; ctx.op = 'noop';
