"""SmolLM2-135M-Instruct, a real small chat model, run from its GGUF file: `local:smollm2`.

    store, fetch          where the file is kept, and how it gets there
    gguf, quantised       the file: metadata, tensors, and blocks of small integers as floats
    pretokens, tokenizer  text to tokens and back
    chat                  a conversation as the prompt that the model was trained on
    llama                 the decoder, in numpy
    llama_cpp             the same by llama-cpp-python, where that is installed
    assistant             all of it together: a conversation in, an answer out as it is written

Only `store` and `fetch` work without numpy (the extra `engine`).
"""
