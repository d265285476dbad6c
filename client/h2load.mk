# Builds h2load and h2load-as-shipped in nghttp2's source tree, after h2load.patch: only the files that h2load needs, and
# without `configure`, whose answers for this version of nghttp2 on the image's Debian are the macros below.
macros := ENABLE_HTTP3 HAVE_ARPA_INET_H HAVE_CLOCK_GETTIME HAVE_DECL_CLOCK_MONOTONIC HAVE_FCNTL_H HAVE_LIBEV \
    HAVE_LIBNGTCP2_CRYPTO_OSSL HAVE_NETDB_H HAVE_NETINET_IN_H HAVE_NETINET_IP_H HAVE_STD_CHRONO_TIME_ZONE \
    HAVE_STRUCT_TM_TM_GMTOFF HAVE_SYS_SOCKET_H HAVE_UNISTD_H
CPPFLAGS := $(macros:%=-D%=1) -DBUILDING_NGHTTP2 -DNGHTTP2_STATICLIB \
    -Isrc -Ilib -Ilib/includes -Ithird-party/urlparse -Ithird-party/llhttp/include
CFLAGS := -O2
CXXFLAGS := -std=gnu++23 -O2
LDLIBS := -lev -lnghttp3 -lngtcp2_crypto_ossl -lngtcp2 -lssl -lcrypto

c := $(wildcard lib/*.c third-party/llhttp/src/*.c) third-party/urlparse/urlparse.c src/timegm.c
# Two files in place of nine, each as much work as the other: else most of the compiler's time would go into the same
# headers and templates again and again.
others := $(filter-out src/h2load.cc,$(wildcard src/h2load*.cc)) $(addprefix src/,http2.cc network.cc tls.cc util.cc)
objects := src/h2load.o src/others.o $(c:.c=.o)

all: h2load h2load-as-shipped
h2load h2load-as-shipped: %: $(objects) variant/%.o
	$(CXX) -s -o $@ $^ $(LDLIBS)

src/others.cc: $(others)
	printf '#include "%s"\n' $(notdir $^) > $@
variant/h2load.cc variant/h2load-as-shipped.cc:
	mkdir -p variant
	echo 'namespace h2load { extern const bool headwind = $(if $(findstring shipped,$@),false,true); }' > $@
