// Answers later: a request for /after/30ms/bytes/10000 waits 30 ms, and is then one for /bytes/10000.
function later(r) {
    setTimeout(() => {
        r.variables.waited = r.variables.request_time; // nginx's own clock, to the millisecond
        // A variable is decoded, and a redirect decodes: `%`, `?` and the like in a file's name need their escapes again.
        r.internalRedirect(`/delayed${r.variables.object.split("/").map(encodeURIComponent).join("/")}`);
    }, Number(r.variables.after_ms));
}

export default { later };
