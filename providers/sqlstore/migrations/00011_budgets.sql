-- What is used of the upstream's budget, written before each request. The next holder of the partition reads it.
CREATE TABLE budgets (
    name     TEXT NOT NULL,    -- of the partition
    endpoint BIGINT NOT NULL,  -- of the upstream
    epoch    BIGINT NOT NULL,  -- of the partition when it was written
    number   BIGINT NOT NULL,  -- grows with each write of one epoch
    rest     BIGINT NOT NULL,  -- requests that the window still allows
    ends     BIGINT NOT NULL,  -- of the window, milliseconds since 1970
    PRIMARY KEY (name, endpoint)
);
