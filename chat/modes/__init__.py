"""How an answer is made: ``registry`` lists the modes, ``mode`` says what one is."""
